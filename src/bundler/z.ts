/**
 * Stands in for zod in the bundle. The dashboard is served by the control plane of its own version, so its answers need no second validation, and
 * a form's mistakes are the server's to find: of the contract the browser needs names, paths, scopes and the fields of objects. That saves
 * a fifth of the script of the first load.
 */
type Shape = Readonly<Record<string, unknown>>;

// The contract makes thousands of schemas before the first paint, and nearly all of them are this one.
const plain = schemaOf({});
export const z: unknown = plain;

/** Objects remember their fields; any other call leads to a schema again. */
function schemaOf(shape: Shape): unknown {
  const schema: unknown = new Proxy(() => {}, {
    get(_, name) {
      if (name === "shape") return shape;
      if (name === "safeParse") return (data: unknown) => ({ success: true, data });
      if (name === "object" || name === "strictObject" || name === "extend")
        return (given: Shape) => schemaOf({ ...shape, ...given });
      return schema;
    },
    apply: () => schema,
  });
  return schema;
}
