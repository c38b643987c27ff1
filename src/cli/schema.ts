import { platformJsonSchema } from '../render/platform-json-schema.js';

/** Prints a JSON schema for editors. */
export function schema(): void {
  process.stdout.write(`${JSON.stringify(platformJsonSchema(), null, 2)}\n`);
}
