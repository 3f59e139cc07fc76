import { getRouteApi } from "@tanstack/react-router";
import type { Answer } from "../../contract/client.ts";
import { useCall } from "./api.ts";

const route = getRouteApi("/projects/$slug");

export type Project = Answer<"projects.get">;

/** Loads the project that the path names. */
export function useProject() {
  const slug = useSlug();
  return useCall("projects.get", { params: { slug } });
}

/** Returns the slug in the path. */
export function useSlug(): string {
  return route.useParams().slug;
}
