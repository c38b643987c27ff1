/** What an agent may ask of its model: the frozen model, and no more output than the profile allows. */
import { JsonMembersError, readMembers } from '../lib/json-members.js';
import type { JsonMember } from '../lib/json-members.js';

/** A request that goes no further: the answer's status, and a code that names the reason. */
export interface Refused {
  readonly status: number;
  readonly code: string;
}

export interface ModelBounds {
  readonly model: string;
  /** Tokens; `0` = no bound. */
  readonly outputLimit: number;
  /** Members that bound the answer; the first is set where a request has none. */
  readonly outputMembers: readonly [string, ...string[]];
}

/**
 * The body to send. It is written from the members that were read, so that the model's server reads what was checked; values that are
 * not ours to check keep their bytes. A guarded member in another spelling is refused: some servers would take it for the real one.
 */
export function boundedRequest(body: Buffer, bounds: ModelBounds): Refused | { readonly body: Buffer } {
  const members = membersOf(body);
  if (!members || members.length > mostMembers) return { status: 400, code: 'malformed_body' };
  const guarded = ['model', ...bounds.outputMembers];
  const spellings = new Set(guarded.map(spelling));
  if (members.some(({ name }) => !guarded.includes(name) && spellings.has(spelling(name))))
    return { status: 400, code: 'ambiguous_member' };
  if (bounds.outputLimit > 0 && members.some(asksForMore)) return { status: 403, code: 'outside_profile' };
  const model = members.find(({ name }) => name === 'model');
  if (!model || parse(model) !== bounds.model) return { status: 403, code: 'outside_profile' };
  const replaced = new Map<string, string>([['model', JSON.stringify(bounds.model)], ...outputBounds(members, bounds)]);
  return { body: written(members, replaced) };
}

/** Members of a request, and characters of a name that may be another spelling: each costs time. */
const mostMembers = 1_000;
const longestName = 256;

/** Whether a member asks for several answers, each of which may be as long as the bound allows. */
function asksForMore(member: JsonMember): boolean {
  return ['n', 'bestof'].includes(spelling(member.name)) && ![1, null].includes(parse(member) as number | null);
}

/** Case, separators and look-alikes do not tell two spellings apart. */
function spelling(name: string): string {
  return name
    .slice(0, longestName)
    .normalize('NFKC')
    .toUpperCase()
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]/gu, '');
}

/** Members to write in another form: each bound that is set, or all of them as the limit if one is not within it. */
function outputBounds(
  members: readonly JsonMember[],
  { outputLimit, outputMembers }: ModelBounds,
): readonly (readonly [string, string])[] {
  if (outputLimit === 0) return [];
  const given = members
    .filter(({ name }) => outputMembers.includes(name))
    .map((member) => [member.name, parse(member)] as const)
    .filter(([, value]) => value !== null);
  const within = given.every(([, value]) => Number.isSafeInteger(value) && Number(value) > 0 && Number(value) <= outputLimit);
  if (given.length > 0 && within) return given.map(([name, value]) => [name, String(value)]);
  const names = given.length > 0 ? given.map(([name]) => name) : [outputMembers[0]];
  return names.map((name) => [name, String(outputLimit)]);
}

function written(members: readonly JsonMember[], replaced: ReadonlyMap<string, string>): Buffer {
  const names = new Set(members.map(({ name }) => name));
  const added = [...replaced].filter(([name]) => !names.has(name));
  const parts = [...members.map(({ name, value }) => [name, replaced.get(name) ?? value] as const), ...added].flatMap(
    ([name, value], i) => [
      Buffer.from(`${i > 0 ? ',' : ''}${JSON.stringify(name)}:`),
      typeof value === 'string' ? Buffer.from(value) : value,
    ],
  );
  return Buffer.concat([Buffer.from('{'), ...parts, Buffer.from('}')]);
}

function membersOf(body: Buffer): readonly JsonMember[] | undefined {
  try {
    return readMembers(body);
  } catch (error) {
    if (error instanceof JsonMembersError) return undefined;
    throw error;
  }
}

/** A short value; `undefined` for one that is too long to be a name or a number. */
function parse({ value }: JsonMember): unknown {
  return value.length <= 4096 ? (JSON.parse(value.toString()) as unknown) : undefined;
}
