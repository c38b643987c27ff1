export * from '../lib/probes.js';
