/**
 * Stands in for zod in the bundle. The dashboard is served by the control plane of its own version, so its answers need no second validation, and
 * a form's mistakes are the server's to find: of the contract the browser needs names, paths, scopes and the fields of objects. That saves
 * a fifth of the script of the first load.
 */
export const z: unknown = schemaOf(undefined);

type Shape = Readonly<Record<string, unknown>>;

/** Any call makes another schema; objects remember their fields. */
function schemaOf(shape: Shape | undefined): unknown {
  return new Proxy(() => {}, {
    get(_, name) {
      if (name === "shape") return shape ?? {};
      if (name === "safeParse") return (data: unknown) => ({ success: true, data });
      if (name === "object" || name === "strictObject" || name === "extend")
        return (given: Shape) => schemaOf({ ...shape, ...given });
      return schemaOf(shape);
    },
    apply: () => schemaOf(shape),
  });
}
