/** What a credential becomes: a header line for Git, or the token itself for the API of a forge. */
export type CredentialKind = 'http-extra-header' | 'forge-token';
/** What a credential is used for. Source: repository.md §1.3. */
type CredentialRole = 'SourceRead' | 'TargetRead' | 'TargetWrite' | 'Forge';

const longest = 32 * 1024;
const prefix = /^authorization:/i;
/** A word that can stand in a header. */
const headerWord = /^[\u0021-\u007e]+$/;
const base64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

/**
 * The material of a credential from the value of its Secret; `undefined` = the value cannot be used.
 *
 * For Git it is the whole header line. Nothing of the value may be shown. Source: repository.md §1.3.
 */
export function credentialMaterial(value: string, kind: CredentialKind = 'http-extra-header'): string | undefined {
  const text = value.trim();
  if (text === '' || text.includes('\0') || Buffer.byteLength(text) > longest) return undefined;
  if (kind === 'forge-token') return forgeToken(text);
  if (!prefix.test(text)) return `Authorization: Basic ${Buffer.from(`x-access-token:${text}`).toString('base64')}`;
  const { scheme, word } = authorization(text);
  if (scheme === 'bearer' && headerWord.test(word)) return `Authorization: Bearer ${word}`;
  if (scheme !== 'basic' || word === '' || !base64.test(word)) return undefined;
  return Buffer.from(word, 'base64').includes(':') ? `Authorization: Basic ${word}` : undefined;
}

function forgeToken(text: string): string | undefined {
  if (/[\r\n]/.test(text)) return undefined;
  if (!prefix.test(text)) return text;
  const { scheme, word } = authorization(text);
  return scheme === 'bearer' && headerWord.test(word) ? word : undefined;
}

/** Scheme in lower case and the one word after it; no word when there are more. */
function authorization(text: string): { readonly scheme: string; readonly word: string } {
  const [scheme = '', word = '', ...rest] = text.replace(prefix, '').trim().split(/\s+/);
  return { scheme: scheme.toLowerCase(), word: rest.length === 0 ? word : '' };
}

const reading: readonly CredentialRole[] = ['SourceRead', 'TargetRead'];

/** The kind and the roles that each operation of the publisher may ask for. Source: repository.md §1.3. */
const rolesOfOperation: Readonly<Record<string, { readonly kind: CredentialKind; readonly roles: readonly CredentialRole[] }>> = {
  'workspace.resolve': { kind: 'http-extra-header', roles: reading },
  'workspace.prepare': { kind: 'http-extra-header', roles: reading },
  'publication.preflight': { kind: 'http-extra-header', roles: ['TargetRead'] },
  'publication.prepare': { kind: 'http-extra-header', roles: reading },
  'publication.publish': { kind: 'http-extra-header', roles: ['TargetWrite'] },
  'pull-request.reconcile': { kind: 'forge-token', roles: ['Forge'] },
};

/** Tells whether an operation may use a credential of this kind and role. Older requests have no role. */
export function mayUseCredential(operation: string, kind: string, role: string): boolean {
  const allowed = Object.hasOwn(rolesOfOperation, operation) ? rolesOfOperation[operation] : undefined;
  return allowed?.kind === kind && (role === '' || allowed.roles.some((one) => one === role));
}
