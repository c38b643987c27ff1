/** What Kubernetes takes as names, keys and values; the API server refuses everything else. */

const dnsLabel = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;
const dnsSubdomain = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const labelValue = /^(([A-Za-z0-9][-A-Za-z0-9_.]{0,61})?[A-Za-z0-9])?$/;
const keyName = /^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;

/** At most 63 characters: a namespace, a container, a Service. */
export const isDnsLabel = (text: string): boolean => dnsLabel.test(text);

/** At most 253 characters: the name of nearly every object. */
export const isDnsSubdomain = (text: string): boolean => text.length <= 253 && dnsSubdomain.test(text);

/** At most 63 characters, also none. */
export const isLabelValue = (text: string): boolean => labelValue.test(text);

/** Key of a label or annotation: an optional DNS prefix and `/`, then a name of at most 63 characters. */
export function isQualifiedName(text: string): boolean {
  const slash = text.indexOf('/');
  return (slash < 0 || isDnsSubdomain(text.slice(0, slash))) && keyName.test(text.slice(slash + 1));
}
