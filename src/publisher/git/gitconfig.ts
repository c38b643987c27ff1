/** Configuration of the network calls of one operation. The credential is sent to exactly this URL. Source: repository.md §3.4. */
export function credentialConfig(url: string, header: string | undefined): string {
  const always = '[http]\n\tfollowRedirects = false\n\tsslVerify = true\n';
  return header === undefined ? always : `${always}[http ${quoted(url)}]\n\textraHeader = ${quoted(header)}\n`;
}

/** The way out, and the authorities that may have signed the forge's certificate. */
export function networkConfig(proxy: string, caFile: string | undefined): string {
  const authorities = caFile === undefined ? '' : `\tsslCAInfo = ${quoted(caFile)}\n`;
  return `[http]\n\tproxy = ${quoted(proxy)}\n\tproxyAuthMethod = basic\n${authorities}`;
}

const quoted = (text: string): string => `"${text.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`;
