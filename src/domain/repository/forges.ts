/** Host and port of a forge: a server of repositories. */
export interface ForgeAddress {
  /** In lower case. */
  readonly host: string;
  readonly port: number;
}

const longestList = 10;

/** Reads `host` or `host:port`, as the setting `forges` has it. */
function forgeAddress(text: string): ForgeAddress {
  const [host = '', port = '443'] = text.split(':');
  return { host: host.toLowerCase(), port: Number(port) };
}

/** Tells whether an operator listed a forge. A host without port means port 443. */
export function isListed({ host, port }: ForgeAddress, forges: readonly string[]): boolean {
  return forges.map(forgeAddress).some((forge) => forge.host === host && forge.port === port);
}

/** The forges of the platform, in words. */
export function forgeList(forges: readonly string[]): string {
  const first = forges.slice(0, longestList).join(', ');
  return forges.length > longestList ? `${first} or ${forges.length - longestList} more forges` : first;
}
