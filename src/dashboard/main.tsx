import "./style.css";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "./app.tsx";
import { resumeSession } from "./data/session.ts";
import { router } from "./routes.tsx";

const root = document.getElementById("root");
const fontsTimeoutMs = 3000;

// A one-time link replaces an earlier sign-in, after a question; an invitation may add to it.
const isSigningIn = ["/sign-in", "/join"].includes(location.pathname);
const resumed = isSigningIn ? Promise.resolve(undefined) : resumeSession();
resumed.catch(() => {});
// Loads the page's own code at the same time as the fonts and the session.
if (!isSigningIn) void router.load();

// Waiting for the fonts keeps text from changing its width while a page loads.
const fonts = ["Geist Variable", "Geist Mono Variable"].map((name) => document.fonts.load(`14px "${name}"`));
const waited = new Promise((resolve) => setTimeout(resolve, fontsTimeoutMs));
void Promise.race([Promise.allSettled(fonts), waited]).then(() => {
  if (root !== null)
    createRoot(root).render(
      <StrictMode>
        <App resumed={resumed} />
      </StrictMode>,
    );
});
