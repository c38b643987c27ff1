/** A forge that repositories may come from. Everything else is refused. */
export interface Forge {
  /** A lower-case DNS name, or an address. */
  readonly host: string;
  /** @default 443 */
  readonly port?: number;
  /** PEM of the authorities that may have signed its certificate. @default those of the system */
  readonly ca?: string;
  /** Its address may be a private one. @default false */
  readonly private?: boolean;
  /** The range of its addresses, of a private forge. @default any private address; the NetworkPolicy narrows it */
  readonly cidr?: string;
}

export const portOf = (forge: Forge): number => forge.port ?? 443;
