/**
 * Replaces zod in the bundle. The control plane that serves the dashboard has the same version, so its responses need no second validation,
 * and the server validates forms: of the contract, the browser needs only names, paths, scopes and the fields of objects. That saves a
 * fifth of the script of the first load.
 */
type Shape = Readonly<Record<string, unknown>>;

// The contract creates thousands of schemas before the first paint, nearly all without fields, so they share this one.
const plain = schemaOf({});
export const z: unknown = plain;

/** An object schema remembers its fields; any other method returns a schema again. */
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
