// The least that crosses a cut between two parts A and B of the devices, whatever the schedule, when A computes w of the
// visible (query, key) pairs. Each rank is home to its share of the tokens: it starts with their q, k, v (backward: d_o) and
// ends with their o (d_q, d_k, d_v). A pair whose query and key are at home in different parts needs one of the two moved:
//
//   a row moved      forward q there and o back, backward d_o there and d_q back: cost cq of a query head
//   a column moved   forward k and v there, backward d_k and d_v back: cost ck of a K/V head, for its g query heads
//
// (what backward needs of q, k and v may have stayed there since forward, so it is not counted; nor are row statistics.)
//
// Full mask, n queries and m keys, of which n_A and m_A at home in A. Of a head, A computes a tile of rows and columns. Its
// perimeter is what comes in: (r - n_A) cq + (c - m_A) ck; where a column of B is missing all rows of A go out, n_A cq, and
// where a row of B is, all columns of A, m_A ck. So the pairs and the cost of a head lie above the lower convex hull of
//   (0 and n_A m_A, n_A cq + m_A ck)   (n m_A, n cq)   (n_A m, m ck)   (n m, (n - n_A) cq + (m - m_A) ck)
// as between these points r c is convex in the cost: area against perimeter, and whole heads have most area for it.
//
// Causal mask, the same tokens on both sides: of r rows and c columns at most r c - t (t - 1) / 2 pairs are visible, where
// t = max(n_A, r + c - n) tokens at least are in both. Pair each token of A with one of B: the two see each other one way, so
// one of them moves, in A's direction or in B's: at least min(n_A, n_B - rows in - columns in) further ones at min(cq, ck).
//
// The hull is known by its dual: for any price of bytes a pair, the least of cost - price x pairs. Memory is taken to be
// enough for whole heads; less only adds to what crosses. Windows and documents may lie wholly on one side: nothing is said.
#pragma once

#include <vector>

#include "model/attention/attention.hpp"

namespace attnsim {

/// How the cut divides the tokens, and what moves.
struct divided_heads {
  double units = 0;    ///< K/V heads of all sequences
  double group = 1;    ///< query heads of each
  double row = 0;      ///< cq of all query heads of a K/V head, bytes
  double column = 0;   ///< ck
  double rows = 0;     ///< n
  double columns = 0;  ///< m
  double share = 0;    ///< of the rows and of the columns at home in A
  bool causal = false;

  double pairs() const;  ///< that are visible, over all heads
};

/// The lower hull's dual, over all heads: least bytes - price x pairs of A, `price` in bytes a pair, at least 0.
double least_crossing(const divided_heads&, double price);

/// Under a full mask, the prices at which another of the hull's points becomes the best; else none.
std::vector<double> turning_prices(const divided_heads&);

}  // namespace attnsim
