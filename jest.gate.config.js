import cluster from './jest.cluster.config.js';

/** The cluster tests that CI runs on every change. All others run before a release, with `npm run test:cluster:full`. */
const files = ['first-task', 'policies', 'rbac', 'crashes', 'dispatch-faults', 'handover', 'private-repository'];

/** One row of each kind of fault. */
const faults = [
  ...['CONTROLLER_KILLED_RUNNING', 'SNAPSHOT_TAMPERED_WITH_QUEUED', 'LEASE_LOST_SESSIONSTARTING', 'POD_DELETED_RUNNING'],
  ...[
    'SUPERVISOR_KILLED_RUNNING',
    'AGENT_KILLED_RUNNING',
    'NETWORK_CUT_SETTLING',
    'TASK_DELETED_RUNNING',
    'SANDBOX_DELETED_RUNNING',
    'POOL_DELETED_RUNNING',
  ],
  ...['CLASS_DRIFTED_RUNNING', 'OUTAGE_RUNNING'],
];

// The two matrices read from the environment which rows to play.
process.env['ORKA_CRASHES'] ??= 'gate';
process.env['ORKA_FAULTS'] ??= `^(FAULT_)?(${faults.join('|')})$`;

/** @type {import('jest').Config} */
export default { ...cluster, testMatch: files.map((file) => `**/test/cluster/${file}.test.ts`) };
