// Package margins compares the logit dumps of two folders position by position:
// the numbers behind `plumbline margins`.
//
// # Contract
//
// [Compare] takes every case of the reference folder. Each position, i.e. each
// output token, has the figures of the int8 engine owners' own report (margin of
// the reference's first over its second logit, and over the candidate's pick, in
// logits and in standard deviations of the reference's row; the pick's rank;
// Spearman over the vocabulary and over the reference's top N; the largest
// |z-difference| in the top N) and what they don't tell: KL in nats, regret, the
// error without a shift, the candidate's scale, and the noise of a difference of
// two logits.
//
// Both sides decode freely, so after the first token that differs they read
// different inputs. The position of that flip still has one input on both sides
// and is comparable; those after it are measured, marked and left out of
// [Comparable]. [Naive] counts them, as the owners' report does.
//
// Int32 logits have no unit. Ranks and z-scores need none; for KL the
// candidate's scale is estimated once over all comparable positions, and KL is
// given a second time with each row at its own scale, since an engine that
// quantises its rows one by one has another unit in each.
//
// A case is compared only when both sides ran the same prompt and their dumps
// are what a logit dump is: finite rows that differ within, as many as tokens,
// and token i the largest of row i. One case that isn't costs none of the others.
//
// # Limits and non-goals
//
// There is no yardstick here, so the tie band is at best the candidate's own
// noise, which a bad candidate has more of ([DefaultTieBand] caps it): margins
// measures, gate judges. Two rows and their scratch are in memory at a time,
// whatever the number of positions.
package margins
