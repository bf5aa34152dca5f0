// Package page renders clusterrun's web pages as HTML. It is pure: it turns models into HTML.
// Callers gather the models and serve the pages.
//
//	RunPage ──► RenderRun ──► a page of a server (Live), which loads /assets/page.css and page.js
//	                     └──► a page in one file (File), which has both of them in it
//
// A page shows everything even without its script. The script adds filters, copies commands and
// replaces the changed parts of a live page, which are elements with an ID and the attribute
// data-live. Pages load nothing from other sites, and [CSP] makes browsers enforce that.
//
// Text from runs is hostile until escaped. html/template escapes it, [spec.EscapeControl] shows
// control characters, and output passes through [outputHTML], which omits terminal sequences.
//
// To add a page, add a model that embeds [Frame], a file in templates that defines the page's name
// between "top" and "bottom", and a function that calls render.
package page
