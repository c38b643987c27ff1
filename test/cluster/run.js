// Commands run to their end.

import { spawn } from 'node:child_process';
import { appendFileSync } from 'node:fs';

import { Failure } from './failure.js';

/** @type {Set<import('node:child_process').ChildProcess>} */
const children = new Set();
// Whoever ends us means what we are waiting for as well.
process.on('exit', () => children.forEach((child) => child.kill()));

/**
 * @typedef {object} RunOptions
 * @property {string} [input] standard input
 * @property {NodeJS.ProcessEnv} [env] added to the environment
 * @property {string} [cwd]
 * @property {string} [log] file that receives the output as well
 * @property {number} [timeout] milliseconds
 * @property {(line: string) => void} [onLine] called for each line of standard error
 */

/**
 * Runs a program and answers how it ended. A program that cannot be started has status 127.
 *
 * @param {string} program
 * @param {readonly string[]} args
 * @param {RunOptions} [options]
 * @returns {Promise<{ status: number, stdout: string, stderr: string }>}
 */
export function attempt(program, args, options = {}) {
  return new Promise((resolve) => {
    let stdout = '';
    let stderr = '';
    let partial = '';
    const child = spawn(program, args, {
      cwd: options.cwd,
      env: { ...process.env, LC_ALL: 'C', ...options.env },
      stdio: ['pipe', 'pipe', 'pipe'],
      timeout: options.timeout,
      killSignal: 'SIGKILL',
    });
    children.add(child);
    child.stdout.setEncoding('utf8').on('data', (/** @type {string} */ chunk) => {
      stdout += chunk;
      if (options.log) appendFileSync(options.log, chunk);
    });
    child.stderr.setEncoding('utf8').on('data', (/** @type {string} */ chunk) => {
      stderr += chunk;
      if (options.log) appendFileSync(options.log, chunk);
      if (options.onLine) {
        const lines = (partial + chunk).split('\n');
        partial = lines.pop() ?? '';
        lines.forEach(options.onLine);
      }
    });
    // The program may end without having read its input; how it ended says more than the broken pipe.
    child.stdin.on('error', () => undefined);
    child.stdin.end(options.input ?? '');
    child.on('error', (error) => {
      children.delete(child);
      resolve({ status: 127, stdout, stderr: error.message });
    });
    child.on('close', (code, signal) => {
      children.delete(child);
      resolve({ status: code ?? 1, stdout, stderr: signal ? `${stderr}\nended by ${signal}` : stderr });
    });
  });
}

/**
 * Runs a program that must succeed, and answers its standard output.
 *
 * @param {string} program
 * @param {readonly string[]} args
 * @param {RunOptions} [options]
 */
export async function run(program, args, options = {}) {
  const { status, stdout, stderr } = await attempt(program, args, options);
  if (status === 0) return stdout;
  const reason = (stderr.trim() || stdout.trim()).split('\n').slice(-12).join('\n');
  throw new Failure(`${[program, ...args].join(' ').slice(0, 300)}: ended with ${status}\n${reason}`, { log: options.log });
}
