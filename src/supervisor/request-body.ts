export * from '../lib/request-body.js';
