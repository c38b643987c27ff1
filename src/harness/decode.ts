export * from '../lib/decode.js';
