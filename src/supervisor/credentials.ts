import { readFileSync } from 'node:fs';
import type { Credentials } from '../harness/bootstrap.js';
import { shortestSecret } from '../harness/protocol.js';
import { ConfigError } from './config.js';

const names = {
  controllerToken: 'ORKA_ACP_CONTROLLER_TOKEN',
  capabilitySecret: 'ORKA_ACP_CAPABILITY_SECRET',
  providerToken: 'ORKA_ACP_PROVIDER_TOKEN',
} as const;

/** Each credential may come as a file, or as a value that is read once. */
export const credentialVariables: readonly string[] = Object.values(names).flatMap((name) => [
  `${name}_FILE`,
  `${name}_BOOTSTRAP`,
]);

/** The credentials that files or the environment hold. Values are removed from `env`: no child may inherit them. A file wins. */
export function takeCredentials(env: Record<string, string | undefined>): Credentials {
  const values = Object.entries(names).map(([member, name]) => {
    const file = (env[`${name}_FILE`] ?? '').trim();
    const value = file === '' ? (env[`${name}_BOOTSTRAP`] ?? '') : readFile(`${name}_FILE`, file);
    Reflect.deleteProperty(env, `${name}_BOOTSTRAP`);
    return [member, value.trim()] as const;
  });
  const credentials = Object.fromEntries(values) as unknown as Credentials;
  const short = (['controllerToken', 'capabilitySecret'] as const).find(
    (member) => Buffer.byteLength(credentials[member]) < shortestSecret,
  );
  if (short !== undefined)
    throw new ConfigError('invalid', {
      at: 'environment',
      field: names[short],
      foundKind: `${Buffer.byteLength(credentials[short])} bytes`,
      allowed: `at least ${shortestSecret} bytes`,
    });
  if (credentials.providerToken === '')
    throw new ConfigError('invalid', { at: 'environment', field: names.providerToken, says: 'there is no token' });
  return credentials;
}

function readFile(field: string, file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (cause) {
    throw new ConfigError('invalid', { at: 'environment', field, says: `${file} cannot be read` }, { cause });
  }
}
