// Package bisect compares two dump folders row by row: the numbers behind
// `plumbline bisect`.
//
// # Contract
//
// [Compare] takes every case of the reference folder and measures each row of
// its layer dump against the candidate's: the three figures of the int8 engine
// owners' own report (Spearman with average ranks; Pearson of z-scores with the
// population standard deviation; the largest |z-difference|, a constant row's z
// being all zeros) and, because those three can't see scale, relative L2 and
// norm ratio. Int8 rows are dequantised first. One case that can't be compared
// has its own [Fault] and costs none of the others.
//
// A row is measured only after its dump is known to belong to the same capture:
// number of rows, width, fingerprint, capture mode, in this order.
//
// # Limits and non-goals
//
// Nothing is judged here: a number without a bound is no verdict. Two rows are
// in memory at a time, whatever the size of the dumps.
package bisect
