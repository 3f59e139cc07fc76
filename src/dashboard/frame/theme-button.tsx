import { Monitor, Moon, Sun } from "lucide-react";
import { useState } from "react";
import { readTheme, setTheme, type Theme } from "../data/theme.ts";
import { IconButton } from "../ui/button.tsx";

const next: Record<Theme, Theme> = { system: "light", light: "dark", dark: "system" };
const icons = { system: Monitor, light: Sun, dark: Moon };

/** Cycles through the themes: system, light, dark. */
export function ThemeButton() {
  const [theme, choose] = useState(readTheme);
  const Icon = icons[theme];
  const change = () => {
    setTheme(next[theme]);
    choose(next[theme]);
  };
  return (
    <IconButton label={`Theme: ${theme}`} onClick={change}>
      <Icon size={15} />
    </IconButton>
  );
}
