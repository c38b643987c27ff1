import { choice, object, optional } from './schema.js';
import type { ObjectSchema, Static, TSchema } from './schema.js';
import { ObjectMetaSchema } from './meta.js';

/** API group of all kinds of this package. */
export const group = 'core.orka.ai';
/** API version of all kinds of this package. */
export const version = 'v1alpha1';

/** A column of `kubectl get`. */
export interface PrinterColumn {
  readonly name: string;
  readonly type: 'string' | 'integer' | 'number' | 'boolean' | 'date';
  readonly jsonPath: string;
  /** Shown by `kubectl get -o wide` only. */
  readonly wide?: true;
}

declare const described: unique symbol;

/** A kind of ours: its names and the one schema from which its type, its CRD and its offline validation come. Namespaced, with a status subresource. */
export interface Kind<T> {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly plural: string;
  readonly singular: string;
  readonly listKind: string;
  readonly shortNames: readonly string[];
  /** The whole object: apiVersion, kind, metadata, spec, status. */
  readonly schema: ObjectSchema;
  readonly printerColumns: readonly PrinterColumn[];
  /** Annotations of the CRD, not of the objects. */
  readonly crdAnnotations: Readonly<Record<string, string>>;
  /** Only in the type: what an object of this kind looks like. */
  readonly [described]?: T;
}

/** `group/version` as objects carry it. */
export function apiVersion(kind: Pick<Kind<unknown>, 'group' | 'version'>): string {
  return `${kind.group}/${kind.version}`;
}

type Declared<S> = Pick<Kind<unknown>, 'kind' | 'printerColumns'> & { readonly schema: S } & Partial<
    Pick<Kind<unknown>, 'shortNames' | 'crdAnnotations'>
  >;

/** A kind of our group; its other names follow from `kind`, with the plural in `-s` or `-es`. */
export function define<S extends ObjectSchema>({ kind, schema, ...rest }: Declared<S>): Kind<Static<S>> {
  const singular = kind.toLowerCase();
  return {
    group,
    version,
    kind,
    plural: singular + (singular.endsWith('s') ? 'es' : 's'),
    singular,
    listKind: `${kind}List`,
    shortNames: [],
    crdAnnotations: {},
    ...rest,
    schema,
  };
}

/** The schema of a whole object of ours. */
export function resource<const K extends string, Spec extends TSchema, Status extends TSchema>(
  kind: K,
  spec: Spec,
  status: Status,
  options?: Parameters<typeof object>[1],
) {
  return object(
    {
      apiVersion: choice([`${group}/${version}`]),
      kind: choice([kind]),
      metadata: ObjectMetaSchema,
      spec,
      status: optional(status),
    },
    options,
  );
}
