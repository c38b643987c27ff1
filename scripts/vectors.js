#!/usr/bin/env node
// Copies golden vectors into test/vectors: data only, one vector a line. The reference's wordings do not come along:
// we keep what it computed, not how it puts things.
//
// Texts are moved token by token, never through JSON.parse: integers above 2^53, `__proto__` members and the spelling
// of escapes arrive as they left.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const target = fileURLToPath(new URL('../test/vectors/', import.meta.url));

/** Members that only comment or name the source. */
const dropped = new Set(['note', 'producer', 'goError']);
/** Members of an output that may hold a sentence; classes (`duplicate-key`, `plan`) have no space and stay. */
const sentences = new Set(['error', 'signatureError', 'message', 'taskMessage']);

/**
 * A JSON text as a tree whose scalars keep their source text.
 * @typedef {{ scalar: string } | { items: Node[] } | { members: [string, Node][] }} Node
 * @param {string} text
 * @returns {Node}
 */
function parse(text) {
  const token = /\s*("(?:[^"\\]|\\.)*"|[[\]{}:,]|[^\s[\]{}:,"]+)/y;
  const next = () => token.exec(text)?.[1];
  const value = (first) => {
    if (first === '[') {
      const items = [];
      for (let t = next(); t !== ']'; t = next()) if (t !== ',') items.push(value(t));
      return { items };
    }
    if (first === '{') {
      const members = [];
      for (let t = next(); t !== '}'; t = next()) {
        if (t === ',') continue;
        next();
        members.push([t, value(next())]);
      }
      return { members };
    }
    return { scalar: first };
  };
  JSON.parse(text); // refuses what the loop above would not
  return value(next());
}

/** @param {Node} node @param {boolean} inOutput */
function strip(node, inOutput = false) {
  if (node.items) return { items: node.items.map((item) => strip(item, inOutput)) };
  if (!node.members) return node;
  const members = [];
  for (const [key, value] of node.members) {
    const name = JSON.parse(key);
    if (dropped.has(name)) continue;
    const isSentence = inOutput && sentences.has(name) && value.scalar?.startsWith('"') && value.scalar.includes(' ');
    members.push([key, isSentence ? { scalar: 'true' } : strip(value, inOutput || name === 'output')]);
  }
  return { members };
}

/** @param {Node} node */
function compact(node) {
  if (node.items) return `[${node.items.map(compact).join(',')}]`;
  if (node.members) return `{${node.members.map(([key, value]) => `${key}:${compact(value)}`).join(',')}}`;
  return node.scalar;
}

/** Spread over lines: the root, its objects, whatever holds `vectors`, and the lists in all of these. */
function print(node, depth = 0) {
  const pad = ' '.repeat(depth + 1);
  const lines = (open, parts, close) =>
    parts.length === 0 ? open + close : `${open}\n${parts.map((part) => pad + part).join(',\n')}\n${' '.repeat(depth)}${close}`;
  if (node.items) return lines('[', node.items.map(compact), ']');
  if (node.members && (depth <= 1 || node.members.some(([key]) => key === '"vectors"')))
    return lines(
      '{',
      node.members.map(([key, value]) => `${key}: ${print(value, depth + 1)}`),
      '}',
    );
  return compact(node);
}

const source = process.argv[2];
if (source === undefined || process.argv.length > 3) {
  console.error('usage: node scripts/vectors.js SOURCE_DIR');
  process.exit(2);
}
mkdirSync(target, { recursive: true });
const files = readdirSync(source).filter((file) => file.endsWith('.json'));
if (files.length === 0) {
  console.error(`${source}: found no *.json, allowed: the folder of the golden vectors`);
  process.exit(1);
}
for (const file of files.sort()) {
  const text = `${print(strip(parse(readFileSync(path.join(source, file), 'utf8'))))}\n`;
  JSON.parse(text);
  writeFileSync(path.join(target, file), text);
}
console.log(`${files.length} files written to ${path.relative(process.cwd(), target) || '.'}`);
