/** @type {import('jest').Config} */
export default {
  // Scales every time limit to the machine.
  testEnvironment: '<rootDir>/test/support/environment.js',
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
