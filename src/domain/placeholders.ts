import { factNames } from './facts.js';
import type { FactName, PlainFacts, WorkspaceFacts } from './facts.js';

/** A place-holder ends in a mark, so that none is part of another, and is a DNS label, so that it may stand wherever a fact may. */
export const placeholderForm = /live-[a-z0-9-]+-0/;

export function placeholder(name: string): string {
  return `live-${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}-0`;
}

/** Stands for the digest of the template it is written into. */
export const revisionPlaceholder = placeholder('templateRevision');

export const workspacePlaceholders = Object.fromEntries(
  factNames.workspace.map((name) => [name, placeholder(name)]),
) as WorkspaceFacts;

export const plainPlaceholders: PlainFacts = {
  ...(Object.fromEntries(factNames.plain.map((name) => [name, placeholder(name)])) as Omit<PlainFacts, 'replicas'>),
  replicas: 0,
};

export type LeafName = FactName | 'replicas' | 'templateRevision';

const leafByPlaceholder = new Map<string, LeafName>([
  ...factNames.workspace.map((name): [string, LeafName] => [placeholder(name), name]),
  [revisionPlaceholder, 'templateRevision'],
]);

/** The leaf that a text stands for, if it is a place-holder as a whole. */
export function leafOf(text: string): LeafName | undefined {
  return leafByPlaceholder.get(text);
}
