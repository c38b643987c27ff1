import { CodedError } from '../../src/lib/errors.js';
import type { SourceFailure } from '../../src/publisher/source-git.js';
import type { ErrorDetail, PublisherCode } from '../../src/source/errors.js';

/** A failure as git's side throws it: its text is not for others. */
export class SourceErrorLike extends CodedError<PublisherCode> implements SourceFailure {
  readonly detail: ErrorDetail | undefined;

  constructor(code: PublisherCode, detail?: ErrorDetail) {
    super(code, { at: 'git', says: 'said the forge' });
    this.detail = detail;
  }
}
