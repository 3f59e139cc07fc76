import type { Builder, BuildRequest } from "../ports/builder.ts";
import type { Member } from "./family.ts";

/** Joins all builders of this machine into one. Each image records the runtime that it is for. Several runtimes may share a builder. */
export function joinBuilders(members: readonly [Member, ...Member[]]): Builder {
  const builders = [...new Set(members.map(({ builder }) => builder))];
  return {
    async build(request) {
      const { name, builder } = memberFor(members, request);
      const built = await builder.build(request);
      return built.outcome === "built" ? { ...built, image: { ...built.image, runtime: name } } : built;
    },
    plan: (request) => memberFor(members, request).builder.plan(request),
    images: async (id) => (await Promise.all(builders.map((builder) => builder.images(id)))).flat(),
    async diskBytes(id) {
      const all = await Promise.all(builders.map((builder) => builder.diskBytes(id)));
      return all.reduce((sum, bytes) => (sum === null || bytes === null ? null : sum + bytes), 0);
    },
    isShortOfSpace: async () => (await Promise.all(builders.map((builder) => builder.isShortOfSpace()))).includes(true),
    async takenBytes(id) {
      const all = await Promise.all(builders.map((builder) => builder.takenBytes(id)));
      return all.find((bytes) => bytes !== null) ?? null;
    },
    tryLogin: builders.find(({ tryLogin }) => tryLogin !== undefined)?.tryLogin,
    clearCaches: async (id) => void (await Promise.all(builders.map((builder) => builder.clearCaches(id)))),
  };
}

/**
 * Returns the member for the requested runtime. If the platform no longer has that runtime, it is the first member, so the next push moves
 * the project there.
 */
function memberFor(members: readonly [Member, ...Member[]], { runtime }: Pick<BuildRequest, "runtime">): Member {
  return members.find(({ name }) => name === runtime) ?? members[0];
}
