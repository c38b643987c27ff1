/** A reference to an image, as container runtimes read it. */
export interface ImageReference {
  /** With its port; absent: the registry that the runtime uses by itself. */
  readonly host?: string;
  readonly path: string;
  readonly tag?: string;
  /** `<algorithm>:<hex>` */
  readonly digest?: string;
}

const label = '[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?';
const host = `(?:${label}(?:\\.${label})*|\\[[a-fA-F0-9:]+\\])(?::[0-9]{1,5})?`;
const component = '[a-z0-9]+(?:(?:\\.|_|__|-+)[a-z0-9]+)*';
const tag = '[\\w][\\w.-]{0,127}';
const digest = '[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}';
const reference = new RegExp(`^(?:(${host})/)?(${component}(?:/${component})*)(?::(${tag}))?(?:@(${digest}))?$`);

const longestPath = 255;

/** The parts of a reference; `undefined` = it is none. Grammar: github.com/distribution/reference. */
export function parseImageReference(text: string): ImageReference | undefined {
  if (text.length > 2048) return undefined;
  const [, first, rest = '', ...named] = reference.exec(text) ?? [];
  if (rest === '') return undefined;
  // A first part that cannot be a host belongs to the path.
  const isHost = first !== undefined && (/[.:A-Z[]/.test(first) || first === 'localhost');
  const path = first === undefined || isHost ? rest : `${first}/${rest}`;
  const port = isHost ? Number(/:(\d+)$/.exec(first)?.[1] ?? 0) : 0;
  if (path.length > longestPath || port > 65535) return undefined;
  return {
    ...(isHost ? { host: first } : {}),
    path,
    ...(named[0] === undefined ? {} : { tag: named[0] }),
    ...(named[1] === undefined ? {} : { digest: named[1] }),
  };
}

/** What a pinned image looks like, for errors. */
export const pinnedImageForm = '<host>[:<port>]/<path>[:<tag>]@sha256:<64 lower-case hex digits>';

/** Pinned by digest; a tag can move. */
export const isPinnedImage = (text: string): boolean => /^sha256:[a-f0-9]{64}$/.test(parseImageReference(text)?.digest ?? '');

/** Pinned by a digest of zeros, which stands for an image that was not built. */
export const isUnbuiltImage = (text: string): boolean => /@sha256:0{64}$/.test(text);
