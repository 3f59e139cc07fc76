import type { Locator } from "playwright-core";

/** Counts the clicks of a person who uses a pointer: one to enter a field, two to choose from a list. */
export function countedClicks() {
  let clicks = 0;
  return {
    get count() {
      return clicks;
    },
    async click(target: Locator): Promise<void> {
      clicks += 1;
      await target.click();
    },
    async fill(field: Locator, text: string): Promise<void> {
      clicks += 1;
      await field.click();
      await field.fill(text);
    },
    async select(list: Locator, option: string): Promise<void> {
      clicks += 2;
      await list.selectOption(option);
    },
  };
}
