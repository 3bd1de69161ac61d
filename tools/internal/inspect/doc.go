// Package inspect says what a file or a dump folder holds, for `plumbline
// inspect`.
//
// # Contract
//
// Layer and logit dumps carry no type: which one a file is follows from what
// its side declares. [File] therefore tries every reader and reports each
// reading that fits the file's size, with what it would mean; a declaration
// (engine.json beside the file, or the ending of its name) is reported as such
// and decides between readings that fit. Values are looked at once, in constant
// memory, for NaN, infinities, constant and all-zero rows.
//
// [Folder] opens every case of a dump folder; [Model] sums up a Hugging Face
// model folder from its config and the headers of its weights.
//
// # Limits and non-goals
//
// Nothing is compared, and no model is run.
package inspect
