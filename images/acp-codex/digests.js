// Digests of what drives the agent, as the profile of a pool carries them: node digests.js <node_modules>
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import path from 'node:path';

const arm = process.arch === 'arm64';
const architecture = arm ? 'arm64' : 'amd64';
const triple = arm ? 'aarch64-unknown-linux-musl' : 'x86_64-unknown-linux-musl';

/** Path of the Codex CLI below `node_modules`. */
export const codexCli = `@openai/codex-linux-${process.arch}/vendor/${triple}/bin/codex`;

/**
 * @param {string} modules a `node_modules` folder
 * @returns {Record<string, string>} name to `sha256:<hex>`
 */
export function adapterDigests(modules) {
  const digest = (/** @type {string} */ file) =>
    `sha256:${createHash('sha256')
      .update(readFileSync(path.join(modules, file)))
      .digest('hex')}`;
  return {
    'codex-acp': digest('@agentclientprotocol/codex-acp/dist/index.js'),
    [`codex-cli-linux-${architecture}`]: digest(codexCli),
  };
}

if (process.argv[1] === import.meta.filename) console.log(JSON.stringify(adapterDigests(process.argv[2] ?? 'node_modules')));
