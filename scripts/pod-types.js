// Types of Pods and volume claims for src/constructs, out of the models of client-node. A consumer who imports these types from client-node
// itself compiles its whole client, and needs types for what that imports. Usage: node scripts/pod-types.js [--check]

import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const package_ = path.join(root, 'node_modules/@kubernetes/client-node');
const target = path.join(root, 'src/constructs/pod-types.ts');
/** The types that src/constructs imports; what they refer to is not exported. */
const roots = [
  'V1Container',
  'V1EnvVar',
  'V1NodeSelectorRequirement',
  'V1NodeSelectorTerm',
  'V1PersistentVolumeClaimSpec',
  'V1PodAffinityTerm',
  'V1PodSpec',
  'V1Probe',
  'V1Toleration',
  'V1TopologySpreadConstraint',
  'V1Volume',
];

/** The members of a model, with their comments. @param {string} name */
function membersOf(name) {
  const text = readFileSync(path.join(package_, 'dist/gen/models', `${name}.d.ts`), 'utf8');
  const found = new RegExp(
    `((?:/\\*\\*\\n(?:\\*[^\\n]*\\n)+\\*/\\n)?)export declare class ${name} \\{\\n([^]*?)    static `,
  ).exec(text);
  if (!found) throw new Error(`${name}: its declaration is not a class with static members`);
  const [, comment = '', body = ''] = found;
  return { comment, body };
}

/** Interfaces of the roots and of all that they refer to. */
export function podTypes() {
  const { version, license } = JSON.parse(readFileSync(path.join(package_, 'package.json'), 'utf8'));
  const done = new Map();
  for (const todo = [...roots]; todo.length > 0;) {
    const name = todo.pop() ?? '';
    if (done.has(name)) continue;
    const { comment, body } = membersOf(name);
    done.set(name, tidy(`${comment}${roots.includes(name) ? 'export ' : ''}interface ${name} {\n${body}}\n`));
    todo.push(...new Set(body.replace(/\/\*[^]*?\*\//g, '').match(/\b[A-Z]?\w*V1[A-Z]\w*/g) ?? []));
  }
  const interfaces = [...done.entries()].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, text]) => text);
  return [
    `// Source: @kubernetes/client-node ${version} (${license}). Written by scripts/pod-types.js; never edit.\n`,
    '/** A number, or text such as `50%` or the name of a port. */\ntype IntOrString = number | string;\n',
    ...interfaces,
  ].join('\n');
}

/** @param {string} text */
const tidy = (text) =>
  text
    .replace(/^( *)\*(?=[ /])/gm, '$1 *')
    .replaceAll("\\'", "'")
    .replace(/^(\s*)'(\w+)'(\??):/gm, '$1$2$3:')
    .replace(/^ {4}/gm, '  ');

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const text = podTypes();
  if (!process.argv.includes('--check')) writeFileSync(target, text);
  else if (readFileSync(target, 'utf8') !== text) {
    console.error('src/constructs/pod-types.ts: differs from the models of client-node; run `node scripts/pod-types.js`');
    process.exitCode = 1;
  }
}
