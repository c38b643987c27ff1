import { createRequire } from 'node:module';
import type { Json } from '../../src/lib/json.js';
import { isObject } from '../../src/lib/json.js';

/** The parts of fengari that are used; it has no types of its own. */
interface Fengari {
  readonly to_luastring: (text: string) => Uint8Array;
  readonly to_jsstring: (text: Uint8Array) => string;
  readonly lua: {
    readonly LUA_OK: number;
    readonly lua_pushnil: (state: State) => void;
    readonly lua_pushboolean: (state: State, value: boolean) => void;
    readonly lua_pushnumber: (state: State, value: number) => void;
    readonly lua_pushstring: (state: State, value: Uint8Array) => void;
    readonly lua_createtable: (state: State, items: number, members: number) => void;
    readonly lua_seti: (state: State, index: number, at: number) => void;
    readonly lua_setfield: (state: State, index: number, name: Uint8Array) => void;
    readonly lua_getfield: (state: State, index: number, name: Uint8Array) => void;
    readonly lua_setglobal: (state: State, name: Uint8Array) => void;
    readonly lua_pcall: (state: State, args: number, results: number, handler: number) => number;
    readonly lua_tostring: (state: State, index: number) => Uint8Array | null;
    readonly lua_pop: (state: State, count: number) => void;
  };
  readonly lauxlib: {
    readonly luaL_newstate: () => State;
    readonly luaL_requiref: (state: State, name: Uint8Array, open: unknown, global: number) => void;
    readonly luaL_loadstring: (state: State, text: Uint8Array) => number;
  };
  readonly lualib: { readonly luaopen_base: unknown; readonly luaopen_table: unknown };
}
type State = object;

const require = createRequire(import.meta.url);
const { lua, lauxlib, lualib, to_luastring: bytes, to_jsstring: textOf } = require('fengari') as Fengari;

/** What a health check says of an object. */
export interface Health {
  readonly status: string | undefined;
  readonly message: string | undefined;
}

/**
 * Runs a health check as Argo CD does: the object is the global `obj`, the answer a table. Of Lua's libraries there are the basic one and `table`; a
 * check without `useOpenLibs` gets no `string` and no `math`, and of `os` only the time. Source: argo-cd, util/lua.
 */
export function healthOf(script: string, object: Json): Health {
  const state = lauxlib.luaL_newstate();
  lauxlib.luaL_requiref(state, bytes('_G'), lualib.luaopen_base, 1);
  lauxlib.luaL_requiref(state, bytes('table'), lualib.luaopen_table, 1);
  push(state, object);
  lua.lua_setglobal(state, bytes('obj'));
  const done = lauxlib.luaL_loadstring(state, bytes(script)) === lua.LUA_OK && lua.lua_pcall(state, 0, 1, 0) === lua.LUA_OK;
  if (!done) throw new Error(`the health check failed: ${stringAt(state, -1) ?? ''}`);
  const member = (name: string): string | undefined => {
    lua.lua_getfield(state, -1, bytes(name));
    const text = stringAt(state, -1);
    lua.lua_pop(state, 1);
    return text;
  };
  return { status: member('status'), message: member('message') };
}

function stringAt(state: State, index: number): string | undefined {
  const found = lua.lua_tostring(state, index);
  return found === null ? undefined : textOf(found);
}

function push(state: State, value: Json | undefined): void {
  if (value === null || value === undefined) lua.lua_pushnil(state);
  else if (typeof value === 'boolean') lua.lua_pushboolean(state, value);
  else if (typeof value === 'number') lua.lua_pushnumber(state, value);
  else if (typeof value === 'string') lua.lua_pushstring(state, bytes(value));
  else if (isObject(value)) {
    lua.lua_createtable(state, 0, 0);
    for (const [name, member] of Object.entries(value)) {
      push(state, member);
      lua.lua_setfield(state, -2, bytes(name));
    }
  } else {
    lua.lua_createtable(state, 0, 0);
    value.forEach((item, index) => {
      push(state, item);
      lua.lua_seti(state, -2, index + 1);
    });
  }
}
