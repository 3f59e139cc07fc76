/** Replaces zod in the bundle, where nothing is validated (see `contractTables`): every schema accepts everything. */
const schema: unknown = new Proxy(() => {}, {
  get: (_, name) => (name === "safeParse" ? (data: unknown) => ({ success: true, data }) : schema),
  apply: () => schema,
});

export const z: unknown = schema;
