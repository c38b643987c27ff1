import base from './jest.config.js';

/** Tests against a real cluster, one file after the other: they share its namespaces. */
/** @type {import('jest').Config} */
export default {
  ...base,
  roots: ['<rootDir>/test/cluster'],
  testPathIgnorePatterns: ['/node_modules/'],
  maxWorkers: 1,
  testTimeout: 300_000,
};
