// Package page renders the web pages of clusterrun as HTML. It is pure: a model goes in, and
// HTML comes out. Callers gather the models and serve the pages.
//
//	RunPage ──► RenderRun ──► a page of a server (Live), which loads /assets/page.css and page.js
//	                     └──► a page in one file (File), which has both of them in it
//
// A page without script shows everything. The script adds filters, copies commands and replaces
// the parts of a live page that have changed: each element with the attribute data-live and an
// ID. Pages load nothing from other places; [CSP] makes browsers hold them to that.
//
// Text from runs is hostile until it is escaped. html/template does that, [spec.EscapeControl] shows
// control characters, and output passes through [ansiHTML], which keeps only colors.
//
// To add a page, add a model with [Frame] in it, a file in templates that defines its name
// between "top" and "bottom", and a function that calls render.
package page
