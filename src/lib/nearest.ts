/** How many characters must be added, removed or replaced to make one text of another; letters of both cases are equal. */
function distance(a: string, b: string): number {
  const [from, to] = [a.toLowerCase(), b.toLowerCase()];
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let i = 1; i <= from.length; i++) {
    const next = [i];
    for (let j = 1; j <= to.length; j++) {
      const replaced = (row[j - 1] ?? 0) + (from[i - 1] === to[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[to.length] ?? 0;
}

/** The name that was probably meant; `undefined` = none is near. */
export function nearest(text: string, names: readonly string[]): string | undefined {
  if (text.length > 100) return undefined;
  const far = Math.floor(text.length / 3) + 1;
  const [best] = names.map((name) => ({ name, steps: distance(text, name) })).sort((a, b) => a.steps - b.steps);
  return best && best.steps <= Math.min(far, 3) ? best.name : undefined;
}
