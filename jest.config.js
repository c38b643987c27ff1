/** @type {import('jest').Config} */
export default {
  testEnvironment: 'node',
  // Real processes and sockets are slow on a busy machine.
  testTimeout: 60_000,
  roots: ['<rootDir>/test'],
  setupFiles: ['<rootDir>/test/support/seed.ts'],
  testMatch: ['**/*.test.ts'],
  testPathIgnorePatterns: ['/node_modules/', '<rootDir>/test/cluster/'],
  extensionsToTreatAsEsm: ['.ts'],
  moduleNameMapper: { '^(\\.{1,2}/.*)\\.js$': '$1' },
  transform: {
    '^.+\\.ts$': [
      '@swc/jest',
      { jsc: { target: 'es2022', parser: { syntax: 'typescript', decorators: false } }, module: { type: 'es6' } },
    ],
  },
};
