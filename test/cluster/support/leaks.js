// Credentials, and whether a text holds one.

/** A value as it may stand in a text: raw, and as the three forms that base64 gives it inside something longer. @param {string} secret */
export function formsOf(secret) {
  const bytes = Buffer.from(secret, 'latin1');
  const encoded = [0, 1, 2].flatMap((shift) => {
    const text = Buffer.concat([Buffer.alloc(shift), bytes])
      .toString('base64')
      .replace(/=+$/, '');
    // The first and the last characters also hold bits of what is beside it.
    const inside = text.slice(shift === 0 ? 0 : shift + 1, (bytes.length + shift) % 3 === 0 ? undefined : -1);
    return [inside, inside.replaceAll('+', '-').replaceAll('/', '_')];
  });
  return [secret, ...encoded];
}

/**
 * @param {string} text
 * @param {ReadonlyMap<string, string>} credentials by name
 * @returns {readonly string[]} names of those that are in it
 */
export function credentialsIn(text, credentials) {
  return [...credentials].flatMap(([name, secret]) => (formsOf(secret).some((form) => text.includes(form)) ? [name] : []));
}

/**
 * The credentials in the private Secrets of pools, which the admin finds. The nonce is public.
 *
 * @param {import('./model.js').Kubectl} kubectl
 * @param {import('./installation.js').Installation} installation
 * @param {string} [poolUid] of one pool; all without it
 * @returns {Promise<readonly (readonly [key: string, value: string])[]>}
 */
export async function credentialsOf(kubectl, { namespaces }, poolUid) {
  const label = poolUid === undefined ? 'orka.ai/runtime-pool-uid' : `orka.ai/runtime-pool-uid=${poolUid}`;
  const answer = await kubectl(['get', 'secrets', '-n', namespaces.runtime, '-l', label, '-o', 'json']);
  const { items } = /** @type {{ items: readonly { data?: Record<string, string> }[] }} */ (JSON.parse(answer));
  return items
    .flatMap(({ data = {} }) => Object.entries(data))
    .filter(([key]) => key !== 'bootstrap-nonce')
    .map(([key, value]) => [key, Buffer.from(value, 'base64').toString('latin1')]);
}
