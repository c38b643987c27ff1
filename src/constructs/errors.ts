import { CodedError } from '../lib/errors.js';

/** Codes of {@link RenderError}, for `switch`. */
export type RenderErrorCode =
  /** The settings of a class are not what its schema and rules allow. */
  | 'class-invalid'
  /** An object breaks a rule of the provider or of our policy; the finding names the rule. */
  | 'rule-violated'
  /** A patch touches what may not be patched. */
  | 'patch-refused'
  /** A patch does not apply: a missing path, a failed test, an unknown operation. Nothing of it was applied. */
  | 'patch-failed'
  /** A fact is not placed as a whole leaf, or the class contains the text of a place-holder. */
  | 'fact-misplaced'
  /** A pool was frozen with other values than the class has. */
  | 'frozen-value'
  /** Two objects of one output have the same identity. */
  | 'duplicate-identity'
  /** Objects depend on each other, or on themselves. */
  | 'dependency-cycle';

/** Rendering was refused; nothing was written or sent. `finding.at` is the construct path. */
export class RenderError extends CodedError<RenderErrorCode> {}
