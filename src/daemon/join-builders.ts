import type { Builder, BuildRequest } from "../ports/builder.ts";
import type { Member } from "./family.ts";

/** All builders of this machine as one; each image says which runtime it is for. */
export function joinBuilders(members: readonly [Member, ...Member[]]): Builder {
  const builders = members.map(({ builder }) => builder);
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
    clearCaches: async (id) => void (await Promise.all(builders.map((builder) => builder.clearCaches(id)))),
  };
}

/** A runtime that the platform no longer has gives way to the first one: so a push moves what was left behind. */
function memberFor(members: readonly [Member, ...Member[]], { runtime }: Pick<BuildRequest, "runtime">): Member {
  return members.find(({ name }) => name === runtime) ?? members[0];
}
