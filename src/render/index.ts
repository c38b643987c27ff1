export { manifestsOf, renderApp } from './app.js';
export type { RenderedFile } from './app.js';
export { classDigest, compile } from './compile.js';
export type { CompiledFamily, CompiledObject, CompiledPool } from './compile.js';
export { instantiate, renderedObjects } from './instantiate.js';
export type { RenderedPool } from './instantiate.js';
export { renderRuntimePool } from './runtime-pool.js';
export { toYaml, toYamlStream } from './yaml.js';
