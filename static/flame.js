// Runs before speedscope and gives it the one profile of this page: whatever the address says after
// its "#" is replaced, so that no link decides what is loaded. Its readers of other formats try
// eval; without it they go on quietly, and the content security policy has nothing to refuse.
"use strict";
history.replaceState(null, "", `#profileURL=${encodeURIComponent(document.documentElement.dataset.profile)}`);
delete window.eval;
// The theme of the page around it; without one speedscope follows the system, as that page does.
const theme = parent.document.documentElement.dataset.theme;
if (theme) localStorage.setItem("speedscope-color-scheme", theme.toUpperCase());
else localStorage.removeItem("speedscope-color-scheme");
