import { CodedError } from '../../lib/errors.js';
import type { Finding } from '../../lib/errors.js';
import { publisherCodes } from '../../source/errors.js';
import type { ErrorDetail, PublisherCode } from '../../source/errors.js';

/** A repository could not be resolved or prepared. Never holds a text of a forge, a URL or a credential. */
export class SourceError extends CodedError<PublisherCode> {
  readonly retryable: boolean;
  readonly detail: ErrorDetail | undefined;

  constructor(code: PublisherCode, finding: Finding, detail?: ErrorDetail) {
    super(code, finding);
    this.retryable = publisherCodes[code].retryable;
    this.detail = detail;
  }
}
