// The packing of a matrix product's next operands while it computes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/kernels/extents.h"
#include "ops/kernels/packing.h"
#include "ops/kernels/tile.h"

namespace olmo::ops::OLMO_ISA {

/// How an operand is packed; the numbers of its source that lie beside each other are a "row".
enum class Layout {
  kNone,        ///< not at all: it is fetched and read where it lies
  kRows,        ///< rows of A
  kColumnsOfA,  ///< panels of kTileRows columns
  kColumnsOfB,  ///< panels of kTileColumns columns
  kTransposed   ///< panels of kTileColumns rows, transposed
};

/// The numbers of an operand from one on: fp32, or bf16 where `is_bf16`.
struct Source {
  const void* first;
  bool is_bf16;
};

/// `bf16` is null, or what is read in place of x.
inline Source source(const float* x, const Bf16* bf16, std::int64_t offset) {
  return bf16 != nullptr ? Source{bf16 + offset, true} : Source{x + offset, false};
}

/// The part of an operand that is wanted next. Tiles copy it to its panels while they multiply,
/// where it is a copy; any other is packed piece by piece between tiles, each piece once the tile
/// before has fetched it into the second-level cache. Packed at once, a part waits for memory: it
/// cannot be fetched whole beforehand, since rows that share cache sets drive each other out.
class Packer {
 public:
  Packer() = default;

  /// `rows` rows of `length` numbers of `from`, `stride` apart, become panels from `to` on that are
  /// `panel` floats apart, as rows are that are copied as they are. `lines`: of the cache, that a
  /// tile fetches at most.
  Packer(Layout layout, Source from, std::int64_t stride, std::int64_t rows, std::int64_t length,
         float* to, std::int64_t panel, std::int64_t lines)
      : layout_(layout),
        from_(from),
        stride_(stride),
        rows_(length > 0 ? rows : 0),
        length_(length),
        to_(to),
        panel_(panel) {
    const std::int64_t in_line = 64 / size();
    if (layout == Layout::kTransposed) {
      piece_rows_ = kTileColumns;
      piece_columns_ = larger(1, lines / kTileColumns) * in_line;
    } else {
      piece_rows_ = larger(1, lines / larger(1, parts_of(length, in_line)));
      piece_columns_ = length;
    }
  }

  [[nodiscard]] bool all_taken() const { return row_ >= rows_; }

  /// The lines of the next piece, which pack() will pack.
  Lines fetch() {
    fetched_ = next_piece();
    const char* first =
        static_cast<const char*>(from_.first) + (fetched_.row * stride_ + fetched_.column) * size();
    const auto into_line = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(first) % 64);
    const std::int64_t in_row = parts_of(into_line + fetched_.columns * size(), 64);
    return {first - into_line, fetched_.rows * in_row, in_row,
            stride_ * size() - (in_row - 1) * 64};
  }

  /// Whether a tile that copies so many pieces at most can copy it.
  [[nodiscard]] bool is_copied(std::int64_t pieces) const {
    if (!kManyBeside || from_.is_bf16 || layout_ == Layout::kNone || layout_ == Layout::kTransposed)
      return false;
    return length_ % width() == 0 && pieces >= length_ / width();
  }

  /// The next whole rows, at most so many pieces.
  Copies copies(std::int64_t pieces) {
    constexpr std::int64_t kAhead = 64;  // pieces that are copied while one is fetched
    Copies c;
    c.in_row = length_ / width();
    c.wide = layout_ != Layout::kColumnsOfA;
    c.from_step = width();
    c.to_step = layout_ == Layout::kRows ? width() : panel_;
    const std::int64_t to_row = layout_ == Layout::kRows ? panel_ : width();
    c.from = static_cast<const float*>(from_.first) + row_ * stride_;
    c.to = to_ + row_ * to_row;
    c.from_next = stride_ - (c.in_row - 1) * c.from_step;
    c.to_next = to_row - (c.in_row - 1) * c.to_step;
    const std::int64_t rows = smaller(pieces / c.in_row, rows_ - row_);
    c.count = rows * c.in_row;
    c.ahead = larger(1, kAhead / c.in_row) * stride_;
    row_ += rows;
    return c;
  }

  void pack() {
    pack(fetched_);
    fetched_.rows = 0;
  }

  /// Packs all that has not been packed yet.
  void finish() {
    pack();
    piece_columns_ = length_;
    if (layout_ != Layout::kTransposed) piece_rows_ = rows_;
    while (!all_taken()) pack(next_piece());
  }

 private:
  struct Piece {
    std::int64_t row, rows, column, columns;
  };

  [[nodiscard]] std::int64_t size() const { return from_.is_bf16 ? sizeof(Bf16) : sizeof(float); }

  [[nodiscard]] std::int64_t width() const {
    return layout_ == Layout::kColumnsOfA ? kTileRows : kTileColumns;
  }

  Piece next_piece() {
    const Piece piece{row_, smaller(piece_rows_, rows_ - row_), column_,
                      smaller(piece_columns_, length_ - column_)};
    column_ += piece.columns;
    if (column_ >= length_) {
      column_ = 0;
      row_ += piece.rows;
    }
    return piece;
  }

  void pack(const Piece& piece) {
    if (layout_ == Layout::kNone || piece.rows == 0) return;
    if (from_.is_bf16) {
      pack(static_cast<const Bf16*>(from_.first) + piece.row * stride_ + piece.column, piece);
    } else {
      pack(static_cast<const float*>(from_.first) + piece.row * stride_ + piece.column, piece);
    }
  }

  template <typename Element>
  void pack(const Element* source, const Piece& piece) {
    if (layout_ == Layout::kRows) {
      for (std::int64_t i = 0; i < piece.rows; ++i)
        copy_row(source + i * stride_, piece.columns, to_ + (piece.row + i) * panel_);
    } else if (layout_ == Layout::kColumnsOfA) {
      pack_columns<kTileRows>(source, stride_, piece.columns, piece.rows,
                              to_ + piece.row * kTileRows, panel_);
    } else if (layout_ == Layout::kColumnsOfB) {
      pack_columns<kTileColumns>(source, stride_, piece.columns, piece.rows,
                                 to_ + piece.row * kTileColumns, panel_);
    } else {
      pack_transposed<kTileColumns>(
          source, stride_, piece.rows, piece.columns,
          to_ + piece.row / kTileColumns * panel_ + piece.column * kTileColumns);
    }
  }

  Layout layout_ = Layout::kNone;
  Source from_{};
  std::int64_t stride_ = 0, rows_ = 0, length_ = 0;
  float* to_ = nullptr;
  std::int64_t panel_ = 0, piece_rows_ = 0, piece_columns_ = 0;
  std::int64_t row_ = 0, column_ = 0;  // of the next piece
  Piece fetched_{};
};

}  // namespace olmo::ops::OLMO_ISA
