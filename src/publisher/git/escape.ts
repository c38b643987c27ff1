import { isUtf8 } from 'node:buffer';

import { fitBytes } from '../../lib/text.js';

const longest = 256;
const mark = '…';

/** A path of a repository for messages: one line, no bytes that a terminal acts on, at most 256 bytes. */
export function escapedPath(path: Buffer): string {
  // More than the bound is never shown, so it is not looked at; a cut may split one character.
  const bytes = path.subarray(0, longest + 4);
  const isText = isUtf8(path);
  const text = isText ? trimmed(bytes) : bytes.toString('latin1');
  return fitBytes(Array.from(text, (character) => escapedCharacter(character, isText)).join(''), longest, mark);
}

/** Without the part of a character that a cut left behind. */
const trimmed = (bytes: Buffer): string => bytes.toString().replace(/\ufffd+$/u, '');

/** Control and format characters, separators and unassigned code points are not shown as they are. */
function escapedCharacter(character: string, isText: boolean): string {
  const code = character.codePointAt(0) ?? 0;
  if (character === '\\') return '\\\\';
  const isPlain = isText ? character === ' ' || !/[\p{C}\p{Z}]/u.test(character) : code > 0x20 && code < 0x7f;
  if (isPlain) return character;
  return code < 0x100 ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u{${code.toString(16)}}`;
}
