// Loaded into an agent that is a Node program, before its own code: tells the supervisor how each child of the agent ended. Only a parent
// learns that. The supervisor believes the kernel about whether a process is gone, and this report about no more than how.

import { subscribe } from 'node:diagnostics_channel';

subscribe('child_process', (message) => {
  const { process: child } = /** @type {{ process: import('node:child_process').ChildProcess }} */ (message);
  child.once('exit', (code, signal) => {
    const report = { jsonrpc: '2.0', method: '_orka/child_ended', params: { pid: child.pid, code, signal } };
    process.stdout.write(`${JSON.stringify(report)}\n`);
  });
});
