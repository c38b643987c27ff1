/** Sentences by the end of a path: `conditions[].type` is the field of every list of conditions. */
export type Descriptions = Readonly<Record<string, string>>;
