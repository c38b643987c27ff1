export * from '../lib/connections.js';
