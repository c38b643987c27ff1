/** A text that begins like a command of the agent (`/status`, `/init`), blanks before it or not, made one that does not: a space without width does it. */
export function withoutCommand(text: string): string {
  return /^\s*\//.test(text) ? `\u200b${text}` : text;
}
