export * from '../lib/instant.js';
