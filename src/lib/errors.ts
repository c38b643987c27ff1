import { cutBytes } from './text.js';

/** Where something is wrong and what would be right. Every error of ours can say these four things. */
export interface Finding {
  /** The object: `Task demo/smoke`, a construct path, a file. */
  readonly at: string;
  /** The field inside it, in kubectl's spelling: `spec.runtime.image`. */
  readonly field?: string;
  /** What stands there. Never a credential. */
  readonly found?: unknown;
  /** What stands there, in words, where the value itself must not be shown. Instead of `found`. */
  readonly foundKind?: string;
  /** What may stand there, or what to do instead. */
  readonly allowed?: string;
  /** What is wrong, where that is no value of a field; or the unchanged words of another program, such as the API server. */
  readonly says?: string;
  /** Who has to do what, if that is not the author of the object. */
  readonly remedy?: string;
}

const longest = 200;
/** A server's reason stands at the end of its sentence. */
const longestSaying = 800;

/** A text in JSON up to its quotation mark or a space. */
const word = /(?:[^\s"\\]|\\.)+/g;

/** User info and query of a URL may hold a credential. A password may hold any character, so it ends at the last `@`. */
function withoutSecrets(text: string): string {
  const [start, end] = [text.indexOf('://'), text.lastIndexOf('@')];
  if (start === -1) return text;
  const shown = end < start ? text : `${text.slice(0, start)}://***${text.slice(end)}`;
  return shown.replace(/\?.+/, '?***');
}

function quote(found: unknown): string {
  const whole = found === undefined ? 'nothing' : ((JSON.stringify(found) as string | undefined) ?? typeof found);
  const text = whole.replaceAll(word, withoutSecrets);
  return text.length > longest ? `${text.slice(0, longest).toWellFormed()}…` : text;
}

/** The one text of a finding: `<at>: <field>: <says>: found <found>, allowed: <allowed>; <remedy>`. */
export function describeFinding({ at, field, allowed, says, foundKind, remedy, ...rest }: Finding): string {
  const parts = [at, ...(field ? [field] : []), ...(says ? [cutBytes(says, longestSaying, '…')] : [])];
  const found = foundKind ?? ('found' in rest ? quote(rest.found) : undefined);
  const told = [...(found === undefined ? [] : [`found ${found}`]), ...(allowed ? [`allowed: ${allowed}`] : [])];
  const text = [...parts, told.join(', ')].filter((part) => part !== '').join(': ');
  return remedy === undefined ? text : `${text}; ${remedy}`;
}

/** Base of every error that we throw on purpose. `code` is stable and made for `switch`; the text is for people. */
export class CodedError<Code extends string> extends Error {
  readonly code: Code;
  readonly finding: Finding;

  constructor(code: Code, finding: Finding, options?: { readonly cause?: unknown }) {
    super(describeFinding(finding), options);
    this.name = new.target.name;
    this.code = code;
    this.finding = finding;
  }
}
