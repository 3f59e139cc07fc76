import { createRootRoute, createRoute, createRouter, lazyRouteComponent } from "@tanstack/react-router";
import { Frame } from "./frame/frame.tsx";
import { NotFound } from "./frame/not-found.tsx";
import { ProjectFrame } from "./frame/project-frame.tsx";
import { OverviewPage } from "./pages/overview/overview-page.tsx";

const root = createRootRoute({ component: Frame, notFoundComponent: NotFound });
const at = <const P extends string>(path: P) => ({ getParentRoute: () => root, path }) as const;

const overview = createRoute({ ...at("/"), component: OverviewPage });

const project = createRoute({ ...at("/projects/$slug"), component: ProjectFrame });
const within = <const P extends string>(path: P) => ({ getParentRoute: () => project, path }) as const;
const projectHome = createRoute({
  ...within("/"),
  component: lazyRouteComponent(() => import("./pages/projects/project-page.tsx"), "ProjectPage"),
});

export const router = createRouter({
  routeTree: root.addChildren([overview, project.addChildren([projectHome])]),
  defaultPreload: "intent",
  scrollRestoration: true,
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
