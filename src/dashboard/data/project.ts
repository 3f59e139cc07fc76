import { getRouteApi } from "@tanstack/react-router";
import type { Answer } from "../../contract/client.ts";
import { useCall } from "./api.ts";

const route = getRouteApi("/projects/$slug");

export type Project = Answer<"projects.get">;

export function useProject() {
  const slug = useSlug();
  return useCall("projects.get", { params: { slug } });
}

export function useSlug(): string {
  return route.useParams().slug;
}
